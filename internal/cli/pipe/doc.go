// Package pipe is the command roost api, by which the libraries of other languages use a
// pool: a program starts it once and sends command lines through a pipe.
//
// Requests and answers are objects of JSON, one on each line. Every command line runs in
// this process with the rights of the user who started it, so a library needs neither a
// login nor an address, and can do what that user can do and nothing else.
package pipe
