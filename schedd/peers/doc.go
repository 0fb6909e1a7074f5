// Package peers knows the other schedds of the pool. It asks them for users of this
// schedd, and answers what they ask for theirs.
//
// Peers follows the ads of schedds at the collectors and has one connection to each. It
// is safe for many goroutines; the calls of users run in their own. A peer that was
// silent gets a short time only on the next call, so that one dead schedd does not make
// all lists slow. QueryAll asks all of them at once and merges their rows as they come.
//
// Service answers the other schedds. It reaches the jobs of this one through LocalSchedd,
// which package api implements. JobAdmins are the users who may act on everybody's jobs;
// the loop sets them when the leader sends a policy.
package peers
