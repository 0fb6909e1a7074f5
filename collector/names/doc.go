// Package names knows under which names the tasks of services are found. It is the pure
// core of the collector's DNS and of its watch of names.
//
// A Zone is made from the attribute Endpoints of machine ads. The naive way parses each
// ad and makes all names anew. A machine with a hundred tasks advertises each change of
// one of them, so the zone compares the text of each endpoint with the one before, and
// only changed endpoints are parsed and cost anything. Machines whose names are not
// renewed in time are silent: their endpoints are lost until the next message, and then
// exist again without any restart.
//
// What a machine says about its endpoints is only a claim. The zone checks that
//
//   - the address is one of the machine that sent the ad, and none that leads clients
//     back to themselves or to many hosts;
//   - every value is a literal within its bounds, and job and user are DNS labels;
//   - nothing but the newest attempt of a task has a name: a lower attempt number is
//     ignored, also after the newer attempt has ended.
//
// States of a task, as the machines claim them:
//
//	starting ──▶ unready ◀──▶ ready ──▶ leaving ──▶ (ended)
//	     any of them ◀── silent, heard again ──▶ lost
package names
