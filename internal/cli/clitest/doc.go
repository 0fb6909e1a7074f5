// Package clitest holds what tests of commands share: a program that writes into buffers,
// a fake schedd with a few jobs, a fake guard, and golden files.
//
// The fakes answer over real unix sockets in a directory of their own, which the program
// gets as ROOST_DIR. Its clock is at [Noon]. Only tests import this package.
package clitest
