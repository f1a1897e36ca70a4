/**
 * The requests of a handle as calls of the npm package, with what its callbacks give as typed results.
 */
import type { Acl } from "./access.js";
import {
  ANY_VERSION,
  type Callback,
  CREATE_FLAGS,
  type NativeStat,
  nativeAcl,
  type PackageClient,
  statOf,
} from "./package-client.js";
import type { CreateMode, Stat } from "./session-port.js";

export abstract class NativeRequests {
  /** Sends one request; `pick` makes the result of what the callback was given. */
  protected abstract request<Result extends unknown[], T>(
    operation: string,
    path: string,
    send: (client: PackageClient, done: Callback<Result>) => number,
    pick: (...result: Result) => T,
  ): Promise<T>;

  create(path: string, data: string, mode: CreateMode): Promise<string> {
    return this.request<[string], string>(
      "create",
      path,
      (client, done) => client.a_create(path, Buffer.from(data), CREATE_FLAGS[mode], done),
      (created) => created,
    );
  }

  exists(path: string): Promise<Stat> {
    return this.request<[NativeStat], Stat>(
      "exists",
      path,
      (client, done) => client.a_exists(path, false, done),
      statOf,
    );
  }

  read(path: string, watch: boolean): Promise<{ data: string; stat: Stat }> {
    return this.request<[NativeStat, Buffer | null], { data: string; stat: Stat }>(
      "read",
      path,
      (client, done) => client.a_get(path, watch, done),
      (stat, data) => ({
        data: data === null ? "" : Buffer.from(data).toString("utf8"),
        stat: statOf(stat),
      }),
    );
  }

  list(path: string, watch: boolean): Promise<{ children: string[]; stat: Stat }> {
    return this.request<[string[], NativeStat], { children: string[]; stat: Stat }>(
      "list",
      path,
      (client, done) => client.a_get_children2(path, watch, done),
      (children, stat) => ({ children, stat: statOf(stat) }),
    );
  }

  delete(path: string): Promise<void> {
    return this.request<[], void>(
      "delete",
      path,
      (client, done) => client.a_delete_(path, ANY_VERSION, done),
      () => undefined,
    );
  }

  sync(path: string): Promise<void> {
    return this.request<[string], void>(
      "sync",
      path,
      (client, done) => client.a_sync(path, done),
      () => undefined,
    );
  }

  setAcl(path: string, acl: Acl, version: number): Promise<void> {
    return this.request<[], void>(
      "setAcl",
      path,
      (client, done) => client.a_set_acl(path, version, nativeAcl(acl), done),
      () => undefined,
    );
  }
}
