// Package doctor holds roost doctor, which checks the pool and this machine.
//
// Each check gives results: ok, warn or fail, what was found, and what to do about it.
// With --repair the command takes damaged records out of this node's files; its daemons
// must be stopped.
package doctor
