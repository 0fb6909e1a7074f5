// Package accountant is the daemon roost-accountant: it copies what happens to the jobs
// of a pool into the accounting store.
//
// It finds the schedds by their ads and pulls the feed of each. Entries and the number of
// the next one are stored in one transaction, and acknowledged after it: whichever side
// is killed, the next connection goes on where the store is. Where a feed has a gap, it
// reads the jobs of the schedd instead. Nothing waits for the accountant, and what it has
// stored is a copy: without the store it begins with the jobs of all schedds.
//
//	follower     one for each schedd: pulls its feed
//	machines     watches the ads of the machines
//	upkeep       rolls hours up, charges, closes months
package accountant
