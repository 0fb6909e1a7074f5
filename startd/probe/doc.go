// Package probe runs the health checks of the tasks of a machine.
//
// A Prober is one goroutine with an epoll(7) set of its own: it opens connections for
// HTTP and TCP checks, writes the request, and reads the status line. With net/http a
// check costs about ten times as much, and a machine has thousands of them. Commands of
// exec checks run beside it, one at a time for each task.
//
// What a result means is decided in package startd/health. The prober measures how late
// it is itself, and a failure of which it may be the cause is unknown.
package probe
