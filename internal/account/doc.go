// Package account says who a user is on this machine: which numbers may be users, and
// what the machine's directory knows of them. What a message says of a user, its group
// above all, is a claim of the node that sent it, and is held against this.
//
// The directory is what getpwuid(3), getgrgid(3) and getgrouplist(3) say: files, LDAP,
// SSSD and whatever else nsswitch.conf(5) names. In a program that is built with cgo the
// C library is asked; one without cgo would see /etc/passwd and /etc/group alone, and
// asks getent(1) and id(1) instead. Either may hang with the server behind it, so each
// question has a bound of time, and answers are kept for a while.
package account
