// Package master starts the daemons that a node file names, each in a process of its own, watches them, and restarts what dies. It also
// makes and runs a whole pool on one machine.
package master
