// Package owner holds the commands of the person whose machine is lent: roost pause, mine
// and session-agent.
//
// They speak to the guard of this machine over its unix socket. Where no guard answers,
// the user whose pool it is may still pause the machine: the command writes the file of
// the pause, and the guard reads it when it runs again.
package owner
