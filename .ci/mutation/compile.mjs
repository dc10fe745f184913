// Compiles one request after the other, a line of standard JSON each: the compiler is loaded and warmed up once.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const solc = createRequire(import.meta.url)("../../node_modules/solc");

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(JSON.parse(solc.compile(line))));
}
