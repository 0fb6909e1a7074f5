package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/cell"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// examineNode checks a node without a schedd: a central manager, or an execute node. Ok
// is false where this is none, or its file cannot be read by who asks.
func examineNode(c *frame.Invocation) (findings []checkResult, dir string, ok bool) {
	n, err := nodeaccess.ReadNodeFile(c)
	if err != nil || n.Schedd != nil {
		if errors.Is(err, os.ErrPermission) {
			return []checkResult{{"node", levelWarning, firstLine(frame.ErrorText(err)), "ask as root"}}, "", true
		}
		return nil, "", false
	}
	var parts []string
	for _, part := range []struct {
		name string
		here bool
	}{{"a collector", n.Collector != nil}, {"a negotiator", n.Negotiator != nil}, {"a startd", len(n.Startds) > 0}} {
		if part.here {
			parts = append(parts, part.name)
		}
	}
	findings = []checkResult{{"node", levelOK,
		fmt.Sprintf("%s has %s, and no schedd: nothing is submitted here", n.Name, strings.Join(parts, ", ")), ""}}
	id, err := nodeaccess.LoadIdentity(n)
	if err != nil {
		return append(findings, checkResult{"key", levelError, firstLine(frame.ErrorText(err)),
			"ask as root; if you did, see roost-pki(1)"}), n.Dir, true
	}
	findings = append(findings, examineCollectors(c, n, id)...)
	if n.Negotiator != nil {
		findings = append(findings, negotiatorReplicas(n).examine(c, id)...)
	}
	if n.CellQueue != nil {
		findings = append(findings, queueReplicas(n).examine(c, id)...)
	}
	return findings, n.Dir, true
}

// examineCollectors asks every collector of the node file, as each gets every ad.
func examineCollectors(c *frame.Invocation, n *config.Node, id *rpc.Identity) (findings []checkResult) {
	for _, addr := range n.Collectors {
		err := checkCollector(c, addr, id)
		if err == nil {
			findings = append(findings, checkResult{"collector", levelOK, "answers at " + addr, ""})
			continue
		}
		findings = append(findings, checkResult{"collector", levelWarning, fmt.Sprintf("%s: %s", addr,
			firstLine(frame.ErrorText(err))), "look at that host; the pool goes on while another collector answers"})
	}
	return findings
}

func checkCollector(c *frame.Invocation, addr string, id *rpc.Identity) error {
	conn, err := rpc.Dial(addr, id, peer.Collector)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(c.Context, nodeaccess.CellTimeout)
	defer cancel()
	stream, err := wire.NewCollectorClient(conn).Query(ctx, &scheddapi.AdQuery{Type: "Collector", Limit: 1})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil && err.Error() == "EOF" {
		return nil
	}
	return rpc.FromStatus(err)
}

// replicaGroup is the replicas of which a central manager has one.
type replicaGroup struct {
	check   string // as in results
	own     string // the address of this node's
	setting string // of node files, that names them
	option  string // for roost cell
	logFile string
}

func negotiatorReplicas(n *config.Node) replicaGroup {
	return replicaGroup{check: "negotiator", own: n.OwnNegotiator(), setting: "negotiators",
		logFile: n.Dir + "/log/negotiator.log"}
}

func queueReplicas(n *config.Node) replicaGroup {
	return replicaGroup{check: "cell queue", own: n.CellQueue.Member, setting: "members of cell_queue",
		option: " --queue", logFile: n.Dir + "/log/cell-queue.log"}
}

// examine asks the replica of this node how the cell stands.
func (g replicaGroup) examine(c *frame.Invocation, id *rpc.Identity) []checkResult {
	var s *wire.CellStatus
	err := nodeaccess.AskReplica(c.Context, g.own, id, nodeaccess.CellTimeout,
		func(ctx context.Context, r wire.ReplicaClient) (err error) {
			s, err = r.Status(ctx, &wire.CellQuestion{})
			return err
		})
	if err != nil {
		return []checkResult{{g.check, levelError,
			fmt.Sprintf("that of this node, %s, does not answer: %s", g.own, firstLine(frame.ErrorText(err))),
			"is roost's master running here? if it is, look at " + g.logFile}}
	}
	return g.checkCell(s)
}

// checkCell says what is wrong with a cell, and what to do.
func (g replicaGroup) checkCell(s *wire.CellStatus) (findings []checkResult) {
	here := checkResult{g.check, levelOK, "another leads, this one follows", ""}
	switch {
	case len(s.GetMembers()) == 0:
		here = checkResult{g.check, levelError, cell.FaultToleranceText(s),
			"start the others; they have to name the same " + g.setting + " in their node files. To join a cell that " +
				"is there, say on a member: roost cell add " + g.own + g.option}
	case s.GetSpare() < 0:
		here = checkResult{g.check, levelError, cell.FaultToleranceText(s),
			"see below who cannot be reached, and look at those hosts and the network between. If most are lost for " +
				"good: roost cell recover" + g.option + ", see roost-cell(1)"}
	case s.GetLeader() == "":
		here = checkResult{g.check, levelWarning, cell.FaultToleranceText(s),
			"ask again in a few seconds; if nobody leads then either, look at " + g.logFile}
	case s.GetLeader() == g.own:
		here.Text = "this one leads"
	}
	findings = append(findings, here)
	versions := map[string]bool{}
	for _, m := range s.GetMembers() {
		if m.GetTrouble() != "" || m.GetRole() == "unreachable" {
			findings = append(findings, checkResult{"replica", levelWarning, fmt.Sprintf("%s at %s: %s", m.GetName(),
				m.GetAddress(), firstLine(m.GetTrouble())), "ask there: roost doctor"})
		} else if m.GetRole() == "learner" {
			findings = append(findings, checkResult{"replica", levelWarning,
				fmt.Sprintf("%s has no vote yet: %d entries behind", m.GetName(), m.GetBehind()),
				"it gets it by itself when it has caught up"})
		}
		if v := m.GetVersion(); v != "" {
			versions[v] = true
		}
	}
	if len(versions) > 1 {
		findings = append(findings, checkResult{"version", levelWarning,
			"the replicas of " + g.check + " are of different versions",
			"bring them all to " + roost.Version + ", one after another"})
	}
	if here.Level == levelOK {
		findings = append(findings, g.checkReplicaCount(s))
	}
	return findings
}

// checkReplicaCount says what a cell of so many replicas can bear.
func (g replicaGroup) checkReplicaCount(s *wire.CellStatus) checkResult {
	if advice := cell.EvenVotersWarning(s); advice != "" {
		return checkResult{"cell", levelWarning, cell.FaultToleranceText(s), advice}
	}
	if s.GetSpare() == 0 && len(s.GetMembers()) > 1 {
		return checkResult{"cell", levelWarning, cell.FaultToleranceText(s),
			"bring back those that cannot be reached, or replace them: roost cell add, roost cell remove" +
				g.option}
	}
	return checkResult{"cell", levelOK, cell.FaultToleranceText(s), ""}
}
