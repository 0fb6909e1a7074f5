package roost

import "fmt"

// ServiceState says how far the live attempt of a service's task is. The numbers are on
// disk and on the wire.
type ServiceState uint8

// The states of a task of a service. A task without a live attempt is in none of them.
const (
	NoServiceState  ServiceState = iota
	ServiceStarting              // no check has a result yet
	ServiceUnready               // its checks fail
	ServiceReady                 // its checks pass, or it runs and has none
	ServiceLeaving               // it runs, and is to end
	ServiceLost                  // its machine does not answer
)

var serviceStateNames = [...]string{"", "starting", "unready", "ready", "leaving", "lost"}

func (s ServiceState) String() string {
	if int(s) < len(serviceStateNames) {
		return serviceStateNames[s]
	}
	return fmt.Sprintf("service state %d", uint8(s))
}
