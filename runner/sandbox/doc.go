// Package sandbox starts an engine, and everything that the engine starts, as
// somebody who is not trusted.
//
// It owns how a start is kept from everything else: users, namespaces, the files it
// sees, its limits, its death. Agents call it for every start of an engine; each start
// is a separate sandbox, and Starter.Run returns when all of it is dead. It never
// decides what an engine runs on, never reads configuration, and never keeps anything
// of a run.
//
// # A start
//
// The first process of a sandbox is this program itself, started again: package
// stage, which it has to import, takes over before other packages are
// initialised. It makes the file system, drops what the engine must not have,
// starts it, reaps, and says on a descriptor that no engine has how it ended.
// What it is given, with the engine's environment, comes on another one. Its
// exit code is never believed: an engine can cause it.
//
// In modes with namespaces the kernel ends everything together with the first
// process, and the first process with the agent. In the others the first
// process adopts orphans and ends them: in ModeLandlock and ModeUsers by a
// signal to all that the engine's domain or user has, from a thread that is in
// it and that the kernel lets signal nobody else; if the engine has ended the
// first process, the agent does the same.
//
// # What it does not prevent
//
// docs/security.md has the table of attacks by modes, which is tested. Besides:
//
//   - System calls are not filtered, except for keys and POSIX message queues, on amd64
//     and arm64. It does not help against holes in the kernel.
//   - The network is the machine's, in every mode, with loopback, metadata
//     services and, except in ModeLandlock, abstract sockets.
//   - ModeLandlock covers neither stat, chmod and utime nor sockets that are
//     files, and all sandboxes have one user.
//   - ModeUsers covers what the permissions of files do: workspaces and secrets
//     must be for their users only. /tmp is everybody's, and what a slot's user
//     has left there is removed before and after each start.
//   - Limits are exact with control groups of version 2 only. Without them
//     memory is that of each process, processes are counted where a sandbox has
//     a user or a user namespace of its own, and there is no limit of CPU.
//   - Shared memory of System V stays in ModeLandlock and ModeNone: it needs no
//     process, and is the agent's user's.
//   - ModeNone ends what it finds. A process that wants to escape can.
//   - What a Mount shows is what its Source is when a start begins: it must
//     not lie where an engine can put a link.
package sandbox
