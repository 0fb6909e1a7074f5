package node

import (
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/enroll"
	"github.com/roost-batch/roost/internal/identity/ca"
)

// roleFlags say what a machine is to be in the pool.
func roleFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.BoolFlag{Name: "server", Usage: "the machine runs jobs, and people submit there"},
		&ucli.BoolFlag{Name: "desktop", Usage: "likewise, while its owner does not need it"},
		&ucli.BoolFlag{Name: "central", Usage: "the machine is another central manager"},
		&ucli.BoolFlag{Name: "submit", Usage: "people submit there, and nothing runs there"},
	}
}

// nodeRole is what the flags say, "" where they say nothing.
func nodeRole(c *frame.Invocation) (ca.NodePart, error) {
	var found ca.NodePart
	for _, p := range ca.Parts() {
		if !c.Flag(string(p)) {
			continue
		}
		if found != "" {
			return "", frame.UsageErrorf("--%s and --%s: a machine is one of them", found, p)
		}
		found = p
	}
	return found, nil
}

// JoinCommand returns roost join: make this machine a member of a pool.
func JoinCommand() *frame.Command {
	return &frame.Command{
		Name: "join", Group: frame.GroupPool, Summary: "make this machine a member of a pool",
		Synopsis:    "HOST[:PORT] TOKEN",
		MinOperands: 2, MaxOperands: 2, OperandName: "the line that roost token has printed",
		Description: "Makes this machine a member of the pool whose administrator has given you the line. Its " +
			"private key is made here and stays here. The authority of the pool is known by the token: nothing is " +
			"sent to any other. " +
			"With systemd the node starts now and whenever the machine does. A desktop lends nothing before " +
			"its owner has agreed.",
		Examples: []frame.Example{
			{Line: "sudo roost join 10.0.0.1:9700 rt1… --desktop",
				Description: "join as the desktop that the token is for"},
			{Line: "sudo roost join 10.0.0.1:9700 rt1… --server --name n7 --address 10.0.0.7",
				Description: "say by what name and address the pool is to know it"},
		},
		Flags: append(append(roleFlags(),
			&ucli.StringFlag{Name: "name", Usage: "the node's `NAME`; this machine's unless given"},
			&ucli.StringFlag{Name: "address", Usage: "where the pool reaches this machine, as `HOST[:PORT]`; " +
				"the address that leads to the authority unless given"},
		), nodeInstallFlags()...),
		Run: joinPool,
	}
}

func joinPool(c *frame.Invocation) error {
	part, err := nodeRole(c)
	if err != nil {
		return err
	}
	token, err := ca.ParseToken(c.Args[1])
	if err != nil {
		return err
	}
	done, err := enroll.Join(c.Context, enroll.JoinOptions{
		NodePaths: nodeDirectory(c), Authority: c.Args[0], Token: token, Part: part, Name: c.StringFlag("name"),
		Address: c.StringFlag("address"),
	})
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	n := done.Node
	fmt.Fprintf(c.Stderr, "This machine is now %s, a %s of the pool %s. Its node file is %s.\n", n.Name, done.Part,
		n.Pool, n.File)
	if done.SeenAddress != "" {
		fmt.Fprintf(c.Stderr, "The pool sees it as %s: an address is translated between. Unless the pool reaches it "+
			"by the address in the node file, name one that it does reach there.\n", done.SeenAddress)
	}
	switch done.Part {
	case ca.Desktop:
		fmt.Fprintf(c.Stderr, "It lends nothing before its owner has agreed: roost resume\n")
	case ca.Central:
		fmt.Fprintf(c.Stderr, "Once it runs, take it in on the first central manager with roost cell add %s, and put "+
			"%s into collectors and %s into negotiators of the other nodes' files.\n",
			n.Negotiator.Listen[0], n.Collector.Listen[0], n.Negotiator.Listen[0])
	}
	return startNode(c, n.File, done.Part == ca.Desktop)
}

// joinLine is what makes a machine a member.
func joinLine(address, token string, part ca.NodePart) string {
	return strings.Join([]string{"roost", "join", address, token, "--" + string(part)}, " ")
}

// RevokeCommand returns roost revoke: put a machine out of the pool.
func RevokeCommand() *frame.Command {
	return &frame.Command{
		Name: "revoke", Group: frame.GroupPool, Summary: "put a machine out of the pool", Synopsis: "NODE",
		MinOperands: 1,
		MaxOperands: 1, OperandName: "the name of a node",
		Description: "Revokes the certificates of a node. The authority refuses it at once, and every other node as " +
			"soon as it has fetched the list, which they do every 15 seconds. Run it where the pool's authority " +
			"is, as root.",
		Examples: []frame.Example{
			{Line: "sudo roost revoke d7 --reason stolen", Description: "d7 is out of the pool"},
			{Line: "sudo roost token --desktop --for d7", Description: "and this lets it in again"},
		},
		Flags: append([]ucli.Flag{&ucli.StringFlag{Name: "reason", Usage: "`WHY`, for the log and for who asks"}},
			authorityFlags()...),
		Run: revokeNode,
	}
}

func roleUsage() error {
	return frame.WithHint(frame.UsageErrorf("say what the machine is to be: --server, --desktop, "+
		"--central or --submit"),
		`as in: roost token --desktop`)
}
