package e2e

import "testing"

// TestHosts runs the daemons as a pool over several hosts. Files are transferred,
// failures between hosts are survived, and nodes with invalid certificates are refused.
func TestHosts(t *testing.T) {
	t.Parallel()
	h := startHosts(t)
	for _, tt := range []struct {
		name string
		run  func(*hostPool)
	}{
		{"files travel", (*hostPool).filesAreTransferred},
		{"output is kept", (*hostPool).undeclaredOutput},
		{"a task is followed", (*hostPool).outputIsFollowed},
		{"transfer never", (*hostPool).fixedFilesJobWaits},
		{"input is missing", (*hostPool).inputIsMissing},
		{"transfers are broken", (*hostPool).transfersAreBroken},
		{"users are themselves", (*hostPool).usersAreThemselves},
		{"shells are the owners", (*hostPool).shellsAreTheOwners},
		{"strangers are refused", (*hostPool).foreignNodesAreRefused},
		{"a link is cut", (*hostPool).linkIsCut},
		{"a startd is killed", (*hostPool).startdIsKilled},
		{"the submit node is killed", (*hostPool).submitNodeIsKilled},
		{"the central manager is down", (*hostPool).centralIsDown},
		{"a machine of a program is lost", (*hostPool).machineOfProgramIsLost},
		{"nodes are lost", (*hostPool).nodesAreLost},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(h.forSubtest(t)) })
	}
}
