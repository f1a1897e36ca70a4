export interface TestZooKeeper {
  connect: string;
  port: number;
  stop(): Promise<void>;
}
export async function startTestZooKeeper(): Promise<TestZooKeeper> {
  return { connect: "127.0.0.1:22181", port: 22181, stop: async () => {} };
}
