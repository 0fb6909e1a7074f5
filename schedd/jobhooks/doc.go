// Package jobhooks runs the programs of a site at the start and the end of each attempt,
// on the submit node. The loop of the schedd never waits for them.
//
//	assignment on disk ──▶ Start: the program ──▶ a verdict: start, refuse, hold, failed
//	an attempt ends ──▶ EnqueueEnds: a file ──▶ its event on disk ──▶ Run: the program
//
// The program at the end is run at least once. A schedd that dies between the file and
// the event runs it also for an end that comes again after the restart, and one that dies
// between the program and the deletion of the file runs it again.
package jobhooks
