// Package desktop applies the owner policy to the claims of a machine. It connects
// package startd/desktop/policy, which has the owner's state and the policy, with package
// startd/slot, which has the claims. The startd and the simulator use it in the same way,
// each with its own ClaimController.
//
//	guard ─reports─▶ owner.PolicyCore ─effects─▶ PolicyEnforcer ─EndClaim─▶ slot.ClaimTable
//	                   ▲                       │ │ ▲                           │
//	                   └────────claims─────────┘ │ └──────────effects──────────┘
//	                                             ▼
//	                            ClaimController: freeze, resume, trim, kill
//
// A claim whose task has not started yet is not frozen but ended, as it has done nothing
// yet.
package desktop
