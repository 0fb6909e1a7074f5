// Package balancer forwards TCP connections to the ready tasks of a service.
//
// A Pool has the backends and chooses one for each new connection. Its caller sets them
// again after each change of the names. A Server accepts connections and copies their
// bytes.
//
//	new connection ──▶ choose ──▶ connect ──▶ copy until both sides have ended
//	                     ▲           │ failed: nothing was sent yet
//	                     └───────────┘ the next backend; none is left: wait for a change
//
// A machine that has died does not refuse connections. So the next backend is tried when
// one has not answered for a moment, and the first that accepts gets the client.
//
// A backend that is no longer set, because its task leaves, gets no new connection, and
// those that it has go on. So an update that replaces one task after another interrupts
// nobody, if the tasks wait for the end of their connections.
package balancer
