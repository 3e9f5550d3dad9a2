// Package container runs a container as a process of this machine, without privileges: with
// mounts and processes of its own, and the programs of a folder as its image. The stand-ins for
// a kubelet and for ECS start what they are asked to with it. It is for tests on Linux only.
package container
