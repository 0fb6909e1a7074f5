// Package fault draws faults from a seed, as data, and finds the fewest of them that
// still do harm.
//
// A [Fault] says what happens to which node when, and for how long. Because it is data
// and not code that runs, a schedule that breaks a promise can be cut down to what is
// needed for that ([Minimize]), played again, and told to people line by line.
// [DrawSchedule] follows two habits of those who have done this for long: each seed has
// only some of the kinds, and more of those, as rare meetings are found sooner so (Groce
// et al., "Swarm Testing", ISSTA 2012); and after a time the faults stop, so that what
// does not recover shows (TigerBeetle's simulator).
//
// What a network does to messages is drawn as far as a session lets it happen: between
// two nodes there is a connection that keeps the order, and loses nothing until it
// breaks. So there is no single lost message, but a broken session with all that was on
// its way; what comes late comes from a session that another has replaced; and what is
// said twice is said by somebody who was not answered.
package faults
