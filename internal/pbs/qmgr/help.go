package qmgr

import "strings"

// HelpText returns the help for a topic, or the list of topics.
func HelpText(topic string) string {
	for _, h := range []struct{ word, text string }{
		{"create", "create queue|resource NAME[,NAME…] [ATTRIBUTE = VALUE[,…]]: make queues, which are neither " +
			"enabled nor started unless that is said, or resources.\n"},
		{"delete", "delete queue|resource NAME[,NAME…]: take queues away in which no jobs are, or resources.\n"},
		{"set", "set server|queue|node|resource [NAME[,…]] ATTRIBUTE[.RESOURCE] =|+=|-= VALUE[,…]: set, add to " +
			"or take from attributes. A value with commas or blanks stands in quotes.\n"},
		{"unset", "unset server|queue|node|resource [NAME[,…]] ATTRIBUTE[.RESOURCE][,…]: put attributes back to what " +
			"they are without a word.\n"},
		{"list", "list server|queue|node|resource|sched|hook [NAME[,…]] [ATTRIBUTE[,…]]: show objects, with what " +
			"they are at the moment.\n"},
		{"print", "print server|queue|node|resource|sched [NAME[,…]] [ATTRIBUTE[,…]]: show the commands that make " +
			"objects what they are. print server shows all resources and queues, too.\n"},
		{"active", "active [server|queue|node [NAME[,…]]]: what commands act upon that name nothing.\n"},
		{"quit", "quit, exit: end.\n"},
	} {
		if topic != "" && strings.HasPrefix(h.word, strings.ToLower(topic)) {
			return h.text
		}
	}
	return "Commands are active, create, delete, help, list, print, quit, set and unset; help COMMAND says more. " +
		"Words may be shortened. \\ at the end of a line continues it, ; ends a command, and # begins a comment.\n" +
		"Objects are server, queue, node, resource, sched and hook; @default behind one means this pool.\n"
}
