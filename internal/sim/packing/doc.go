// Package packing measures how well the negotiator's matcher fills machines. It drives
// [match.Matcher] alone, without time and network: tasks arrive in sequence or are all
// there at once, and never end. It is pure: the caller passes the random source, and
// equal input gives equal output.
//
//   - [ReadNodes] and [ReadPods] read the openb trace of a GPU cluster, and [NewCell]
//     makes a [CellWorkload] of it. A cell may have other sources.
//   - [FillCell] lets tasks arrive in random order until they have asked for more than
//     the cell has. It measures how much was allocated, and how much of the rest is
//     unusable (Weng et al., Beware of Fragmentation, USENIX ATC 2023, §6).
//   - [CellCompaction] removes machines at random until the work no longer fits, and so
//     finds how few machines hold it (Verma et al., Large-scale cluster management at
//     Google with Borg, EuroSys 2015, §5.1).
//   - [ArrangementCost] names ways to run a cell that cost machines: production separate,
//     users separate, sizes in powers of two, no reclamation (ibid., §5.2 to §5.5).
package packing
