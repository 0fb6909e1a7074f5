package jobnodes

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
)

func HostNameCommand() *frame.Command {
	return &frame.Command{
		Name: "pbs_hostn", Group: frame.GroupPBS, Summary: "say what a host is called",
		Synopsis: "[-v] HOST", RawArgs: true, MaxOperands: -1, Run: pbsHostn,
		Description: "Prints the whole name of a host, as this machine finds it, and with -v its addresses and what " +
			"these are called.",
		Examples: []frame.Example{
			{Line: "pbs_hostn n1", Description: "what n1 is called"},
			{Line: "pbs_hostn -v n1", Description: "and where it is"},
		},
		Flags: []ucli.Flag{pbsframe.ShortFlag("v", "", "with its addresses, and their names")},
	}
}

func pbsHostn(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "v")
	switch {
	case err != nil:
		return pbsframe.PrintUsage(c, err.Error())
	case len(o.Operands) != 1:
		return pbsframe.PrintUsage(c, "")
	}
	host := o.Operands[0]
	addresses, err := net.DefaultResolver.LookupHost(c.Context, host)
	if err != nil {
		fmt.Fprintf(c.Stderr, "pbs_hostn: %s: Unknown host: %v\n", document.PrintableText(host), err)
		return frame.ExitError(1)
	}
	primary, _ := net.DefaultResolver.LookupCNAME(c.Context, host) // of an address there is none
	fmt.Fprintf(c.Stdout, "primary name: \"%s\"\n",
		document.PrintableText(strings.TrimSuffix(cmp.Or(primary, host), ".")))
	slices.Sort(addresses)
	for _, address := range addresses {
		if !o.IsSet('v') {
			break
		}
		names, _ := net.DefaultResolver.LookupAddr(c.Context, address) // it may have none
		for i := range names {
			names[i] = document.PrintableText(strings.TrimSuffix(names[i], "."))
		}
		fmt.Fprintf(c.Stdout, "     address: %s  name: %s\n", address, cmp.Or(strings.Join(names, " "), "-none-"))
	}
	return nil
}
