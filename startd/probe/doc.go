// Package probe runs the health checks of the tasks of a machine.
//
// A Prober is one goroutine with an epoll(7) set of its own: it opens connections for
// HTTP and TCP checks, writes the request, and reads the status line. With net/http a
// check costs about ten times as much, and a machine has thousands of them. Commands of
// exec checks run beside it, one at a time for each task.
//
// Each check opens a connection, and that is most of what it costs. To keep one would be
// cheaper, but it would not be the same check. It would not notice a server that accepts
// no more, and a server of a single thread would wait for its next request and serve
// nobody else. So connections are new, and what can be kept are the sockets. Checks start
// together with others that are due a little earlier or later, and their answers are read
// together: to be woken for each would cost as much again.
//
// What a result means is decided in package startd/health. The prober measures how late
// it is itself, and a failure of which it may be the cause is unknown.
package probe
