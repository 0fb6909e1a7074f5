// Package idle notices people: each source watches one thing that a person at a machine
// touches, or one way in which the machine says that it is needed, and tells what it
// sees. Combine makes one picture of all of them, by a rule that fails to the owner's
// side:
//
//	busy   if any source says so;
//	busy   if nothing that is well can speak for the console, unless the machine has none;
//	else   idle since the last input that anybody saw.
//
// HTCondor's keyboard daemon taught the second line: where it cannot reach the display,
// "the state of a machine may be incorrectly set to idle when a user is, in fact, using
// the machine" (HTCondor manual, condor_kbdd).
package idle
