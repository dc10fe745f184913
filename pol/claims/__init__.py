"""Claims about segments: exact distances, draws, the acceptance rule, and the structs that verifiers post.

Arguments out of their range raise ProtocolError.
"""
