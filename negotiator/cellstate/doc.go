// Package picture is all of which the negotiator's leader makes a plan, and how it
// becomes the snapshot that package match plans on: the machines with their claims, what
// schedds ask for, what was promised, and what administrators have set. The leader makes
// one with every cycle. A [CellState] can be written down as well ([Write]): that is the
// checkpoint of a cell (Verma et al., Large-scale cluster management at Google with Borg,
// EuroSys 2015, §3.1), of which a simulator makes the very plan that the leader would
// have made.
//
// It is pure, and so nothing in it decides who gets what: that is match's.
package cellstate
