// Package jobpolicy decides what becomes of a task by the conditions that its user gave
// it: it is held, released, removed, vacated or run again (HTCondor manual,
// condor_submit, "Policy Commands"). The package is pure: it evaluates ClassAd
// expressions on what the queue knows of a task.
package jobpolicy
