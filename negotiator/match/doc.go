// Package match is the negotiator's mind: a pure function from a snapshot of the pool to a plan of who gets what, with the reasons for whatever
// has to wait.
//
// # The order
//
// Bands go from high to low; a band sees what the higher ones have left. Within a band submitters take turns by fair share ([share.Turns]). Within a
// submitter the request with the highest priority goes first, then the oldest; one that finds no machine does not block those behind it.
//
// # Where
//
// A machine is feasible for a request if the request's Requirements hold with the machine as TARGET, the machine's Requirements (or its Start, where
// it has none) hold with the request as TARGET, and the resources are free. Of the feasible ones the best has the highest Rank, then the least score
// (see [score]), then the first name. As many units of the turn as fit go to that machine, then the next best is looked for.
//
// # How it is fast
//
// Requirements are evaluated for kinds of machines and not for each. Which attributes of a machine can matter to a request is known from what the
// expressions of both mention; machines that agree in all of these are one kind, and the verdict on a kind is kept for as long as the request's ad
// is the same. In a cycle in which one machine has changed nothing else is evaluated again.
//
// Candidates are kept in a heap for each request. When a unit is placed, the one machine that it went to is noted in a log, and each heap looks
// at what the log has gained since it last did before it gives its best: so its best is always exact.
package match
