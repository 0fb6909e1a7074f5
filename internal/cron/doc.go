// Package cron reads cron expressions and computes the instants that they name. It is
// pure: the caller has the clock, and the seed of H.
//
// An expression has five fields, which say when a job runs in the time of a zone:
//
//	minute 0-59   hour 0-23   day of month 1-31   month 1-12   day of week 0-7
//
// A field is a list of *, N, N-M and H, each with a step behind a slash. Months and days
// of the week have names of three letters. If both days are restricted, either suffices,
// as in Vixie cron. @hourly, @daily, @weekly, @monthly and @yearly are short forms.
//
// H is a number that stays the same for a seed. Thus a hundred jobs of "H 3 * * *" do not
// all start at 3:00.
//
// When clocks go forward, what would run in the hour that does not exist runs once, right
// after it. When they go back, what runs at a certain hour runs in the first of the two.
// An expression whose hour field begins with * follows the clock instead: it runs in both
// hours, and not in the one that does not exist.
package cron
