package cli

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
)

func pkiCommand() *command {
	return &command{
		name:     "pki",
		group:    groupPool,
		summary:  "make the certificates by which nodes know each other",
		synopsis: "init DIR [POOL] | issue DIR NODE [ROLE…]",
		description: "init makes a pool's authority in DIR, which should be where nobody else can read. issue makes " +
			"a key and a certificate for a node, in DIR as well, " +
			"and prints the tls block for its node file. The roles are collector, negotiator, schedd, startd " +
			"and checkpoint-server; schedd and startd unless said.",
		examples: []commandExample{
			{"roost pki init /root/pool-ca physics", "make the authority of the pool physics"},
			{"roost pki issue /root/pool-ca central collector negotiator", "make the central manager's certificate"},
			{"roost pki issue /root/pool-ca n1", "make one for a node that submits and runs jobs"},
		},
		minOperands: 2,
		maxOperands: -1,
		operandName: "init or issue, and a directory",
		run: func(c *invocation) error {
			verb, dir, rest := c.args[0], c.args[1], c.args[2:]
			switch {
			case verb == "init" && len(rest) <= 1:
				return c.pkiInit(dir, append(rest, "pool")[0])
			case verb == "issue" && len(rest) >= 1:
				return c.pkiIssue(dir, rest[0], rest[1:])
			}
			return fmt.Errorf("pki %s: %w: write it as roost pki init DIR [POOL], or roost pki issue DIR NODE [ROLE…]",
				verb, roost.Usage)
		},
	}
}

func (c *invocation) pkiInit(dir, pool string) error {
	if err := pki.Init(dir, pool); err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, "The authority of %s is in %s. Keep ca.key to yourself; every node gets ca.pem.\n", pool, dir)
	return nil
}

func (c *invocation) pkiIssue(dir, node string, names []string) error {
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
	_, err = fmt.Fprintf(c.stdout, "tls {\n  ca          = %q\n  certificate = %q\n  key         = %q\n}\n", files.CA,
		files.Certificate, files.Key)
	fmt.Fprintf(c.stderr, "Copy the three files to %s, the key so that nobody else reads it, and put the block into "+
		"its node file with the places there.\n", node)
	return err
}
