package cell

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// askAnyReplica asks the replica of this node, where it has one, or any other, until one
// answers. The replicas are the negotiators, or with --queue the members of the cell's
// queue.
func askAnyReplica(c *frame.Invocation, patience time.Duration,
	do func(ctx context.Context, r wire.ReplicaClient) error) error {
	n, err := nodeaccess.ReadNodeFile(c)
	if err != nil {
		return err
	}
	id, err := nodeaccess.LoadIdentity(n)
	if err != nil {
		return err
	}
	own, addresses, err := replicaAddresses(c, n)
	if err != nil {
		return err
	}
	if own != "" {
		addresses = append([]string{own}, slices.DeleteFunc(addresses, func(a string) bool { return a == own })...)
	}
	for _, addr := range addresses {
		if err = nodeaccess.AskReplica(c.Context, addr, id, patience, do); !errors.Is(err, roost.Unavailable) ||
			c.Context.Err() != nil {
			return err
		}
	}
	return frame.WithHint(err, "is the "+replicaNoun(c)+" of this node running? see: roost doctor")
}

// replicaAddresses returns the addresses of all replicas, and that of this node's.
func replicaAddresses(c *frame.Invocation, n *config.Node) (own string, all []string, err error) {
	switch q := n.CellQueue; {
	case c.Flag("queue") && q == nil:
		return "", nil, frame.WithHint(fmt.Errorf("cell: %w: the node file of %s has no cell_queue block",
			roost.BadConfig, n.Name), "ask on a central manager that keeps the queue of the cell; roost-cell-queue(8) "+
			"says how to set one up")
	case c.Flag("queue"):
		return q.Member, slices.Clone(q.Members), nil
	case len(n.Negotiators) == 0 && n.Negotiator == nil:
		return "", nil, fmt.Errorf("cell: %w: the node file of %s names no negotiators", roost.BadConfig, n.Name)
	case n.Negotiator != nil:
		own = n.OwnNegotiator()
	}
	return own, slices.Clone(n.Negotiators), nil
}

// replicaNoun is what the replicas in question are.
func replicaNoun(c *frame.Invocation) string {
	if c.Flag("queue") {
		return "member of the cell's queue"
	}
	return "negotiator"
}

// replicaSetting is the setting of node files that has their addresses.
func replicaSetting(c *frame.Invocation) string {
	if c.Flag("queue") {
		return "members of cell_queue"
	}
	return "negotiators"
}

// replicaRecord is a replica, for programs.
type replicaRecord struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Role    string `json:"role"`
	Behind  uint64 `json:"behind"`
	Version string `json:"version,omitempty"`
	Trouble string `json:"trouble,omitempty"`
	ID      string `json:"id"`

	DigestAt uint64 `json:"digest_at,omitempty"`
	Digest   string `json:"digest,omitempty"`
}

func cellStatus(c *frame.Invocation) error {
	var s *wire.CellStatus
	if err := askAnyReplica(c, nodeaccess.CellTimeout, func(ctx context.Context, r wire.ReplicaClient) (err error) {
		s, err = r.Status(ctx, &wire.CellQuestion{})
		return err
	}); err != nil {
		return err
	}
	members := []replicaRecord{}
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "NODE"}, {Head: "ADDRESS"}, {Head: "ROLE"},
		{Head: "BEHIND", RightAligned: true}, {Head: "VERSION"}, {Head: "TROUBLE", MinWidth: 20}}}
	for _, m := range s.GetMembers() {
		members = append(members, replicaRecord{m.GetName(), m.GetAddress(), m.GetRole(), m.GetBehind(), m.GetVersion(),
			m.GetTrouble(), m.GetId(), m.GetDigestAt(), hex.EncodeToString(m.GetDigest())})
		behind := fmt.Sprint(m.GetBehind())
		if m.GetRole() == "unreachable" {
			behind = "-"
		}
		t.AddRow(frame.TableCell{Text: m.GetName()}, frame.TableCell{Text: m.GetAddress()},
			frame.TableCell{Text: m.GetRole(), Colour: roleColour(m.GetRole())}, frame.TableCell{Text: behind},
			frame.TableCell{Text: m.GetVersion()},
			frame.TableCell{Text: m.GetTrouble(), Colour: frame.Dim})
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"cell": s.GetCell(), "leader": s.GetLeader(),
			"term":  s.GetTerm(),
			"spare": s.GetSpare(), "members": members})
	}
	t.DropEmptyColumns("VERSION", "TROUBLE")
	t.Print(c.Stdout, c.OutScreen)
	fmt.Fprintf(c.Stdout, "\n%s\n", FaultToleranceText(s))
	if advice := EvenVotersWarning(s); advice != "" {
		fmt.Fprintf(c.Stdout, "An even number is a bad one: %s.\n", advice)
	}
	return nil
}

func roleColour(role string) string {
	switch role {
	case "leader":
		return frame.Green
	case "learner":
		return frame.Yellow
	case "unreachable":
		return frame.Red
	}
	return ""
}

func cellAdd(c *frame.Invocation, addr string) error {
	if _, _, err := rpc.SplitAddress(addr); err != nil {
		return err
	}
	if err := askAnyReplica(c, changeTimeout, func(ctx context.Context, r wire.ReplicaClient) error {
		_, err := r.Add(ctx, &wire.CellMember{Address: addr})
		return err
	}); err != nil {
		return err
	}
	fmt.Fprintf(c.Stderr, "The %s at %s votes from now on. Put its address into %s in the node files.\n",
		replicaNoun(c), addr, replicaSetting(c))
	return nil
}

func cellRemove(c *frame.Invocation, name string) error {
	if err := askAnyReplica(c, changeTimeout, func(ctx context.Context, r wire.ReplicaClient) error {
		_, err := r.Remove(ctx, &wire.CellMember{Name: name})
		return err
	}); err != nil {
		return err
	}
	fmt.Fprintf(c.Stderr, "%s is no member any more: stop its %s, and take its address out of %s in the node files.\n",
		name, replicaNoun(c), replicaSetting(c))
	return nil
}

// FaultToleranceText is a sentence about how many replicas the cell can lose.
func FaultToleranceText(s *wire.CellStatus) string {
	spare := int(s.GetSpare())
	switch {
	case len(s.GetMembers()) == 0:
		return fmt.Sprintf("The replica of %s belongs to no cell yet: it waits for the others of its node file, "+
			"or to be added.", s.GetSays())
	case spare < 0:
		return fmt.Sprintf("Nothing can be decided: %d more of those that vote must be reached (as %s sees it). "+
			"Running tasks run on.", -spare, s.GetSays())
	case s.GetLeader() == "":
		return "Nobody leads at the moment: an election is under way."
	case spare == 0:
		return "The loss of one more that votes would stop all decisions."
	case spare == 1:
		return "The cell survives the loss of one more."
	}
	return fmt.Sprintf("The cell survives the loss of %d more.", spare)
}

// EvenVotersWarning is a warning about an even number of voters; "" if it is odd.
func EvenVotersWarning(s *wire.CellStatus) string {
	voters := 0
	for _, m := range s.GetMembers() {
		if m.GetRole() != "learner" {
			voters++
		}
	}
	if voters == 0 || voters%2 == 1 {
		return ""
	}
	return fmt.Sprintf("%d bear the loss of no more than %d would, and fail more often: add one with roost cell "+
		"add, or remove one", voters, voters-1)
}

// changeTimeout is how long a replica has to change the members of its cell. It waits for
// a new member to catch up.
const changeTimeout = 30 * time.Second
