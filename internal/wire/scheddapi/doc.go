// Package scheddapi has the messages that users' commands and a schedd exchange, and a
// client that is typed by them. Package wire has the same messages under the same names,
// with those of daemons and with the code for gRPC; a program that is to start fast
// imports only this package.
package scheddapi
