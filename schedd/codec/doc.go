// Package codec turns what a schedd's queue holds into messages of the wire, and back:
// references to attempts, exits, images, placements and bounds on processes. It is pure,
// and has no state; the loop, transfers and the answers to users call it.
package codec
