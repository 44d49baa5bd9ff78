"""Network by host: a run whose only way out is a proxy of ours, which knows the names that it may reach.

Theory of operation. The run has a network namespace of its own, in which only loopback exists. Before the script
starts, a helper of ours enters that namespace, opens a listening socket there and hands it out (`door`); nothing of
ours stays inside. The proxy (`proxy`) accepts on that socket in the caller's process, reads which host a connection is
for (`requests`), looks whether a rule opens it, resolves the name itself and judges every address (`addresses`), and
connects to the address that was judged: a name that changes meanwhile changes nothing. What ignores the proxy finds no
network at all. When the run ends, the socket and every connection are closed; when the caller dies, they die with it.
"""
