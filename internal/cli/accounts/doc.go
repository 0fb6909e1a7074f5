// Package accounts is the commands that ask the accountant: roost usage, roost report and
// roost sacct. Each asks its schedd, which passes the question on with the name of who
// asks.
package accounts
