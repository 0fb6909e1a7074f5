// Package condor has the commands of HTCondor: condor_submit, condor_q and the like. They
// read HTCondor's options, ask the schedd as the other commands do, and print what
// package internal/condor makes of the answers.
package condor
