// Package shell runs a command inside a task that is already running: in its namespaces,
// cgroups and working directory, with its owner's rights, its environment and its limits,
// on a terminal of its own or on pipes.
//
// A Go program cannot enter a user namespace, for it has several threads (setns(2)), and
// what is between root's rights and the user's must not depend on anything that the user
// can write. So the way in has two steps, and both are this program again, run as "roost
// shell-agent":
//
//	Start ── fork ──▶ agent "join"   root, outside: waits until Start has put it into the cgroups, takes the user's groups,
//	                     │           and becomes nsenter(1), which enters the namespaces that differ from ours
//	                     ▼
//	                  agent "become" root of the namespaces, inside: limits, capabilities, gid, uid, working directory,
//	                     │           no_new_privs; looks whether all of it came true
//	                     ▼
//	                  the user's command
//
// Nothing of the user's is in the environment or the arguments of what runs with root's
// rights: the order travels in a sealed file in memory, and the task's environment in it
// is used for the last exec only. The descriptors of namespaces and directories are
// opened before, from a process that is known to be the task's and to have lived until
// all were open; so no number can come to stand for another process in between.
package shell
