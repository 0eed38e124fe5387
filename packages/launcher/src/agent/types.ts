/** Number as the guest sent it: bigint where a double could not hold it. */
export type AgentNumber = number | bigint;

/** A network interface of the guest, in the form of the Domain document. */
export interface AgentInterface {
  readonly Mac: string;
  readonly Ip: string;
  readonly IPs: string[];
  readonly InterfaceName: string;
}

/** The guest's operating system, in the form of the Domain document. */
export interface AgentOsInfo {
  readonly Name: string;
  readonly KernelRelease: string;
  readonly Version: string;
  readonly PrettyName: string;
  readonly VersionId: string;
  readonly KernelVersion: string;
  readonly Machine: string;
  readonly Id: string;
}

/** A user logged in to the guest. `loginTime` in seconds. */
export interface AgentUser {
  readonly name: string;
  readonly domain: string;
  readonly loginTime: number;
}

/** A mounted file system of the guest; sizes in bytes. */
export interface AgentFilesystem {
  readonly name: string;
  readonly mountpoint: string;
  readonly type: string;
  readonly usedBytes: AgentNumber;
  readonly totalBytes: AgentNumber;
  readonly disks: readonly { readonly serial: string; readonly busType: string }[];
}

/** A command of the agent and whether the guest lets it run. */
export interface AgentCommand {
  readonly name: string;
  readonly enabled: boolean;
}

/** Load averages; undefined where the guest gave none. */
export interface AgentLoad {
  readonly load1m: number | undefined;
  readonly load5m: number | undefined;
  readonly load15m: number | undefined;
}

/** Everything the agent ever told, by kind. A kind that was never answered is undefined. */
export interface AgentFacts {
  readonly version?: string;
  readonly supportedCommands?: readonly AgentCommand[];
  readonly hostname?: string;
  readonly timezone?: { readonly zone: string; readonly offset: AgentNumber };
  readonly os?: AgentOsInfo;
  readonly interfaces?: readonly AgentInterface[];
  readonly users?: readonly AgentUser[];
  readonly filesystems?: readonly AgentFilesystem[];
  readonly fsFreezeStatus?: string;
  readonly load?: AgentLoad;
}
