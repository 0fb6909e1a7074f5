// Package frame holds what all commands share: the parser, the help, the output and the
// connections.
//
// An [App] is the program: its streams, its environment and its table of commands. It
// finds the [Command] that a command line names, parses its flags, and runs it with an
// [Invocation]. The Invocation has the flags and operands of this execution, and the
// connection to the schedd, which it opens when a command first asks for it and closes at
// the end. Which schedd that is: the one that --schedd or $ROOST_SCHEDD names; else the
// one that the ids of jobs name; else that of this machine.
//
// Errors carry a kind, which gives the exit status, and may carry a hint, which is
// printed below them. Tables fit the window of a terminal; elsewhere they are as wide as
// their cells. A method of Invocation is what several families of commands use; what one
// family uses is a function of its package that takes the Invocation.
package frame
