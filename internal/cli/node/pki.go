package node

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
)

// PKICommand returns roost pki: make the certificates by which nodes know each other.
func PKICommand() *frame.Command {
	return &frame.Command{
		Name:     "pki",
		Group:    frame.GroupPool,
		Summary:  "make the certificates by which nodes know each other",
		Synopsis: "init DIR [POOL] | issue DIR NODE [ROLE…]",
		Description: "init makes a pool's authority in DIR, which should be where nobody else can read. issue makes " +
			"a key and a certificate for a node, in DIR as well, " +
			"and prints the tls block for its node file. The roles are collector, negotiator, schedd, startd " +
			"and checkpoint-server; schedd and startd unless said.",
		Examples: []frame.Example{
			{Line: "roost pki init /root/pool-ca physics", Description: "make the authority of the pool physics"},
			{Line: "roost pki issue /root/pool-ca central collector negotiator",
				Description: "make the central manager's certificate"},
			{Line: "roost pki issue /root/pool-ca n1", Description: "make one for a node that submits and runs jobs"},
		},
		MinOperands: 2,
		MaxOperands: -1,
		OperandName: "init or issue, and a directory",
		Run: func(c *frame.Invocation) error {
			verb, dir, rest := c.Args[0], c.Args[1], c.Args[2:]
			switch {
			case verb == "init" && len(rest) <= 1:
				return pkiInit(c, dir, append(rest, "pool")[0])
			case verb == "issue" && len(rest) >= 1:
				return pkiIssue(c, dir, rest[0], rest[1:])
			}
			return fmt.Errorf("pki %s: %w: write it as roost pki init DIR [POOL], or roost pki issue DIR NODE [ROLE…]",
				verb, roost.Usage)
		},
	}
}

func pkiInit(c *frame.Invocation, dir, pool string) error {
	if err := pki.Init(dir, pool); err != nil {
		return err
	}
	fmt.Fprintf(c.Stderr, "The authority of %s is in %s. Keep ca.key to yourself; every node gets ca.pem.\n", pool, dir)
	return nil
}

func pkiIssue(c *frame.Invocation, dir, node string, names []string) error {
	roles := []peer.Role{peer.Schedd, peer.Startd}
	if len(names) > 0 {
		roles = nil
	}
	for _, name := range names {
		roles = append(roles, peer.Role(name))
	}
	files, err := pki.IssueTo(dir, node, roles)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Stdout, "tls {\n  ca          = %q\n  certificate = %q\n  key         = %q\n}\n", files.CA,
		files.Certificate, files.Key)
	fmt.Fprintf(c.Stderr, "Copy the three files to %s, the key so that nobody else reads it, and put the block into "+
		"its node file with the places there.\n", node)
	return err
}
