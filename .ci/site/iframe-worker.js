// Opened from disk, browsers start no workers: what would be one runs in a frame of the page. Served pages have workers.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inner = this.frame.contentWindow
      inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.loaded = new Promise((resolve, reject) => {
        const script = inner.document.createElement("script")
        script.src = new URL(url, location.href).href
        script.onload = resolve
        script.onerror = reject
        inner.document.body.append(script)
      })
    }

    postMessage(data) {
      const inner = this.frame.contentWindow
      this.loaded.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
