// Package ownerpage serves one page to the user who sits at a desktop: what the pool runs
// there, how fast it stopped the last times, and buttons that pause and resume.
//
// The command roost mine --web runs it on a loopback port and asks the guard of the
// machine, as the command itself does. So it works with the pool down, and no daemon of
// the pool sees when somebody was at the machine. Other users of the machine reach the
// port: the printed link has a token that is good once. Headers, the check of Host and
// that of the origin of writes are those of the pages of the pool.
package ownerpage
