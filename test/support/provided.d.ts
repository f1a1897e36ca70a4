/** What the global set-up gives to every test file. */
declare module "vitest" {
  export interface ProvidedContext {
    /** Connection string of the shared ZooKeeper. */
    zookeeper: string;
    /** URL of the shared Redis. */
    redis: string;
  }
}

export {};
