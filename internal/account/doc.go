// Package account checks user and group ids on this machine: which numbers may be users,
// and which accounts the machine's directory has. What a message states about a user,
// above all the groups, is a claim of the node that sent it, and is compared with this
// directory.
//
// The directory is the one of getpwuid(3), getgrgid(3) and getgrouplist(3): files, LDAP,
// SSSD and other sources of nsswitch.conf(5). A program that is built with cgo calls the
// C library; one without cgo would see only /etc/passwd and /etc/group, and runs
// getent(1) and id(1) instead. Either may hang with a server, so each lookup has a time
// limit, and answers are cached.
package account
