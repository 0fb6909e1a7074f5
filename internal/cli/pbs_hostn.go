package cli

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"
)

func pbsHostnCommand() *command {
	return &command{
		name: "pbs_hostn", group: groupPBS, summary: "say what a host is called",
		synopsis: "[-v] HOST", rawArgs: true, maxOperands: -1, run: pbsHostn,
		description: "Prints the whole name of a host, as this machine finds it, and with -v its addresses and what " +
			"these are called.",
		examples: []commandExample{
			{"pbs_hostn n1", "what n1 is called"},
			{"pbs_hostn -v n1", "and where it is"},
		},
		flags: []ucli.Flag{shortFlag("v", "", "with its addresses, and their names")},
	}
}

func pbsHostn(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	o, err := getopt(c.args, "v")
	switch {
	case err != nil:
		return c.pbsUsage(err.Error())
	case len(o.operands) != 1:
		return c.pbsUsage("")
	}
	host := o.operands[0]
	addresses, err := net.DefaultResolver.LookupHost(c.ctx, host)
	if err != nil {
		fmt.Fprintf(c.stderr, "pbs_hostn: %s: Unknown host: %v\n", printableText(host), err)
		return exitError(1)
	}
	primary, _ := net.DefaultResolver.LookupCNAME(c.ctx, host) // of an address there is none
	fmt.Fprintf(c.stdout, "primary name: \"%s\"\n", printableText(strings.TrimSuffix(cmp.Or(primary, host), ".")))
	slices.Sort(addresses)
	for _, address := range addresses {
		if !o.isSet('v') {
			break
		}
		names, _ := net.DefaultResolver.LookupAddr(c.ctx, address) // it may have none
		for i := range names {
			names[i] = printableText(strings.TrimSuffix(names[i], "."))
		}
		fmt.Fprintf(c.stdout, "     address: %s  name: %s\n", address, cmp.Or(strings.Join(names, " "), "-none-"))
	}
	return nil
}
