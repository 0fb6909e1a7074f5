package hrm

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator"
)

// containerResources is what a container takes.
var containerResources = roost.Resources{CPU: 1000, Memory: roost.GiB}

// machineNode is a machine that accepts what fits and runs containers.
type machineNode struct {
	*simulation
	number    int
	name      string
	sequence  uint64 // sequence of its newest ad
	claims    []containerClaim
	adPending bool // an ad is about to be sent
}

type containerClaim struct {
	id  uint64
	job int
}

func newMachine(w *simulation, i int) *machineNode {
	return &machineNode{simulation: w, number: i, name: fmt.Sprintf("node%05d", i), sequence: 1}
}

func (w *simulation) machineNamed(name string) *machineNode {
	i, _ := strconv.Atoi(strings.TrimPrefix(name, "node"))
	return w.machines[i]
}

// privateKey returns the private attributes that only the leader sees. All machines have
// the same key.
func privateKey() map[string]string {
	return map[string]string{"GrantKey": "5f0e1d2c3b4a59687786a5b4c3d2e1f05f0e1d2c3b4a59687786a5b4c3d2e1f0"}
}

// startClaim accepts a claim if there is room, and runs its container.
func (m *machineNode) startClaim(job int, id uint64, ended func()) bool {
	if len(m.claims) >= m.Cores {
		return false
	}
	m.claims = append(m.claims, containerClaim{id, job})
	m.advertiseChange()
	length := m.Shortest + time.Duration(m.rng.Intn(int(m.Longest-m.Shortest)+1))
	m.scheduleAfter(length, containerEnd, m.number, func() {
		for i := range m.claims {
			if m.claims[i].id == id {
				m.claims = append(m.claims[:i], m.claims[i+1:]...)
				break
			}
		}
		m.advertiseChange()
		ended()
	})
	return true
}

// advertiseChange sends the machine's ad to the collectors, which pass it to the leader
// and the schedds that place jobs. Only the latest ad counts, so changes until it leaves
// are merged.
func (m *machineNode) advertiseChange() {
	m.sequence++
	if m.adPending {
		return
	}
	m.adPending = true
	m.scheduleAfter(m.ReportInterval, advertise, m.number, func() {
		m.adPending = false
		ad, err := m.ad()
		if err != nil {
			m.failure = err
			return
		}
		sequence := m.sequence
		m.scheduleAfter(2*m.MessageDelay, messageArrived, m.number, func() { // to a collector, and on from there
			for _, s := range m.schedds {
				s.handleMachineAd(m.name, sequence, ad)
			}
			m.leader.machineReports = append(m.leader.machineReports,
				negotiator.ReadMachineUpdate(m.now(), m.name, 1, sequence, ad, privateKey()))
			m.leader.processInbox()
		})
	})
}

// ad returns the machine ad.
func (m *machineNode) ad() (*classad.Ad, error) {
	var text strings.Builder
	fmt.Fprintf(&text,
		`[Name = %q; MyAddress = "unix:/%s"; Arch = "X86_64"; OpSys = "LINUX"; TotalCpus = %d; Cpus = %d; TotalMemory = %d; Memory = %d; Requirements = Start; Start = TARGET.RequestCpus <= TotalCpus; Claims = {`,
		m.name, m.name, m.Cores, m.Cores-len(m.claims), m.Cores*2048, m.Cores*2048-1024*len(m.claims))
	for i, c := range m.claims {
		if i > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, `[Id = %d; Owner = "user%d"; Band = "batch"; AppClass = "batch"; Cpus = 1; Memory = 1024]`,
			c.id, c.job+1)
	}
	text.WriteString("}]")
	return classad.Parse(text.String())
}
