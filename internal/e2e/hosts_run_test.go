package e2e

import "testing"

// The same daemons form a pool over several hosts: files travel, what breaks between them is survived, and strangers are refused.
func TestHosts(t *testing.T) {
	t.Parallel()
	h := startHosts(t)
	for _, tt := range []struct {
		name string
		run  func(*hosts)
	}{
		{"files travel", (*hosts).filesTravel},
		{"output is kept", (*hosts).outputIsKept},
		{"a task is followed", (*hosts).followed},
		{"transfer never", (*hosts).neverTravels},
		{"input is missing", (*hosts).inputIsMissing},
		{"transfers are broken", (*hosts).transfersAreBroken},
		{"users are themselves", (*hosts).usersAreThemselves},
		{"shells are the owners", (*hosts).shellsAreTheOwners},
		{"strangers are refused", (*hosts).strangersAreRefused},
		{"a link is cut", (*hosts).linkIsCut},
		{"a startd is killed", (*hosts).startdIsKilled},
		{"the submit node is killed", (*hosts).submitNodeIsKilled},
		{"the central manager is down", (*hosts).centralIsDown},
		{"a machine of a program is lost", (*hosts).machineOfProgramIsLost},
		{"nodes are lost", (*hosts).nodesAreLost},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(h.in(t)) })
	}
}
