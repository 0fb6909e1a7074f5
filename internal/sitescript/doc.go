// Package sitescript runs the programs that a site writes for its daemons: prologues and
// epilogues of machines, filters of submissions, and hooks at the start and the end of
// jobs. Each has an environment of its own, a bounded time, and output of which a bounded
// part is retained. With it ends all that it has started (Groups), but for what a
// prologue leaves as it ends in time. A program that somebody else than root and the
// daemon's own user could have written is not run.
package sitescript
