// Package lend has done to the claims of a machine what its owner's policy says: it
// stands between package startd/desktop/policy, which knows the owner and the policy, and package
// startd/slot, which knows the claims. The startd and the simulator turn it alike, and
// bring the hands by which it is done.
//
//	guard ──signs──▶ owner.PolicyCore ──orders──▶ PolicyEnforcer ──Expel, HandBack, Lend──▶ slot.ClaimTable
//	                     ▲                    │ ▲                                │
//	                     └──────tenants───────┘ └────────────effects─────────────┘
//	                                          │
//	                                          ▼
//	                                        Hands: stand still, go on, shrink, be killed
//
// A claim that is only about to run something does not stand still: it goes, as it has
// done nothing yet.
package desktop
