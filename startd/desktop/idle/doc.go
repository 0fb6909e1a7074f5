// Package idle detects people at a machine. Each source watches one kind of input, or one
// condition in which the owner needs the machine, and publishes its readings.
// CombineReadings combines the readings of all sources, and in doubt decides for the
// machine owner:
//
//	busy   if any source reports so;
//	busy   if no healthy source covers the console, unless the machine has none;
//	else   idle since the last input that any source noticed.
//
// HTCondor's keyboard daemon shows why the second line is necessary: where it cannot
// reach the display, "the state of a machine may be incorrectly set to idle when a user
// is, in fact, using the machine" (HTCondor manual, condor_kbdd).
package idle
