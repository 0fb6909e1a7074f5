// Package terminal holds roost ssh, which opens a shell in a running task, and what an
// interactive job needs of the user's terminal.
//
// The terminal is in raw mode while the shell runs, and comes back to its old state
// however it ends. Keys go to the shell except the escape ~. at the beginning of a line.
// Input and the sizes of the window leave through one queue, because a stream has one
// sender.
package terminal
