// Package advertise keeps daemons and collectors in touch. A [Client] keeps one ad of
// this daemon alive at every collector of the pool; [Watch] follows all ads of one type
// at every collector and merges what they say into one picture.
//
// Collectors do not speak to each other: each is told everything by everybody, so any of
// them is enough. When two disagree, the newer ad holds: that of the later start of its
// daemon, and within one start that of the higher sequence.
package adclient
